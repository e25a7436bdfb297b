"""Registration of point clouds and planar scans."""
