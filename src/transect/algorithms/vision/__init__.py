"""Image geometry: keypoints, two and more views, stereo matching, rectification."""
