"""Coregistration of height maps: search, least squares, covariance, and rejection of chance matches."""
