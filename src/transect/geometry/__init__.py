"""Pure functions on arrays: no files, no state.

Import the modules (``from transect.geometry import rotations, se3``):

- `rotations`: quaternions, matrices, Euler angles, rotation vectors, slerp
- `kernels`: the formulas of rotations on components, unchecked, for loops
- `se3`: rigid transforms ``T_a_b`` as 4x4 matrices, twists, adjoints, covariances
- `planar`: poses and motions in the plane, integrated along exact arcs; points from ranges and bearings
- `align`: the transform between two sets of corresponding points (Horn, Umeyama, yaw only, origin)
- `array_checks`: checks of shapes, lengths and time axes of arguments
- `camera`: pinhole and fisheye projection, lens distortion both ways, intrinsics
- `geodesy`: WGS84 latitude and longitude, ECEF, local ENU / NED / NWU, UTM
- `interpolation`: nearest, linear and slerp on an int64 nanosecond axis
- `correlation`: the time offset between two signals
- `robust`: medians, robust weights, percentiles, runs
- `neighbours`: outlier filters and voxel grids for point clouds
- `surfaces`: normals and keypoints of point clouds
- `descriptors`: local surface descriptors (FPFH, PFH, SHOT)

Conventions: metres, seconds, radians; quaternions x, y, z, w; ``T_a_b`` takes points of b to a; times are
int64 nanoseconds; NaN means not measured, is propagated and never averaged. Leading axes ``...`` broadcast as
in numpy. Arguments are not modified.
"""
