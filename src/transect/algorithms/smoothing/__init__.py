"""Pose fusion by factor graphs (GTSAM), over a whole recording or over the last seconds."""
