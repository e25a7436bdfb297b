"""Visual odometry with one camera.

- `geometry`: points that several views fix, and the first motion between two of them
- `window`: adjustment of the last keyframes, and their scale by a reference
- `odometer`: all of it together, image by image
"""

from .odometer import MonoOdometer, Settings, Shot

__all__ = ["MonoOdometer", "Settings", "Shot"]
