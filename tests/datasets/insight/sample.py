"""A small folder of IDA products as printed in the SIS, line by line.

Underscores that the printed listings lost are restored. Values that the document lost are made up here and
stand apart in `LOST`.
"""

from pathlib import Path

ARM_NAME = "A0089_0062_602047157_602052923_190129195008_006_arm_float.txt"  # Table 8
SYSTEM_NAME = "A0089_0062_602047157_602052923_190129195008_000_system_float.txt"
HISTORY_NAME = "A0085_0062_602047157_602052923_190129195008_000_system_float.txt"
PARAMETER_NAME = "A0086_0062_602047157_602052923_190129195008_012.txt"
SCIHI_NAME = "A0087_0209_615088547_615088547_190629192905_eu.csv"  # appendix E
SCILO_NAME = "A0088_0209_615088547_615088547_190629192905_eu.csv"
LABEL_NAME = "a0087_0209_615088547_615088547_190629192905_eu.xml"

ARM_STATUS = """\
ra_status.ace.calib OK
ra_status.ace.bus30v_err   = 0
ra_status.ace.parity_err   = 0
ra_status.ace.msg_err      = 0
ra_status.ace.load_box     = 0
ra_status.ace.self_test    = 0
ra_status.mtr.pwr_on       = [ 0    0    0    0 ]
ra_status.mtr.rotation     = [ 0    0    1    0 ]
ra_status.mtr.over_current = [ 0    0    0    0 ]
ra_status.mtr.brake        = [ 0    0    0    1 ]
ra_status.mtr.current      = [ 0.000 0.001 0.000 0.001]
ra_status.jnt.enc          = [-0.100 -0.320 1.010 0.134 ]
ra_status.jnt.pot          = [-0.100 -0.321 1.009 0.134 ]
ra_status.jnt.temp         = [ 26.512 26.656 28.098 28.538 ]
ra_status.ref              = [ 4.502 -4.498 ]
ra_status.htr_crnt         = 0.001
ra_status.agnd             = 0.002
ra_status.time             = 594733695.9
"""
"""SIS 5.1.1, first listing: "calib OK" has no equals sign; the values of load_box and self_test are lost."""

SYSTEM_STATUS = """\
sys_status.curr_limit       = [ 172 325 273 190 ]
sys_status.mtr_volt         = [ 21 2 1 0 ]
sys_status.brake            = [ 0 0 0 0 ]
sys_status.use_pots         = [ 0 0 0 0 ]
sys_status.htr_on           = [ 0 0 0 0 ]
sys_status.tool             = 5 RA_GRAPPLE
sys_status.cool_down        = 0
sys_status.fault_chk_mask   = [ F00F0F 39FF7E7F ]
sys_status.fault_status       [ 0 0 ]
sys_status.act_cmd          = 23 RA_SEND_DATA
sys_status.act_args         = 220
sys_status.task_cmd         = 23 RA_SEND_DATA
sys_status.task_args        = 220
sys_status.target.q         = [ 0.026 -0.389 1.378 0.125 ]
sys_status.target.x         = [ 0.960 0.218 -0.098 0.992 ]
sys_status.via.q            = [ -0.829 -1.640 0.230 0.000 ]
sys_status.via.x            = [ 0.210 0.036 -1.580 1.501 ]
sys_status.via_step         = 7
sys_status.via_time         = 602049408.2
sys_status.col_status.has_collisions = 0
sys_status.col_status.link1 = -1
sys_status.col_status.link2 = -1
sys_status.col_status.obj1  = -1
sys_status.col_status.obj2  = -1
sys_status.rotation_cmd     = [ 1 -1 1 1 ]
sys_status.delta_via.dq     = [ 0.000 0.000 0.000 0.000 ]
sys_status.delta_via.dx     = [ 0.000 0.000 0.000 0.000 ]
sys_status.delta_via.mag    = 0.0000
sys_status.algo_code        = 2 RA_ALGO_CONTACT
sys_status.algo_code_override = 0 RA_ALGO_NO_OVERRIDE
sys_status.delta_via_code   = 3 RA_DELTA_VIA_USER
sys_status.plane_angle      = 0.0097
sys_status.tau              = [ 0.0 0.0 0.0 0.0 ]
sys_status.delta_tau        = 0.0000
sys_status.track_state      = 0 RA_NO_TRACKING
sys_status.energy_limit     = 0.0
sys_status.energy_value     = 0.0
sys_status.time_limit       = 602049206.7
sys_status.grapple_state    = 0 Fingers-Open
sys_status.grapple_temp     = 99.5
sys_status.grapple_exp_time = 0.000000
sys_status.grapple_phase    = 2 RA_OK_TO_OPEN
sys_status.mtr_volt_sign    = [ 0 0 0 0 ]
sys_status.actively_holding_position = 0
sys_status.time             = 602050014.0
"""
"""SIS 5.1.1, second listing: fault_status has no equals sign, via_step is lost, mtr_volt glued ("2121")."""

PARAMETERS = """\
SCLK = 602049000.5

Parameter Set: RA_ARM_PARAMS
dh.a = [ 0.029609000  0.976664007  0.857989013  0.000000000  ]
dh.d = [ -0.056456000 -0.140837997  0.000000000  0.000000000  ]
dh.alpha = [ 1.570799947  0.000000000  0.000000000  1.570799947  ]
x_blade_1 = [ -0.015010000  0.000000000  0.105240002  0.000000000  ]
x_blade_2 = [ -0.015010000  0.000000000  0.105240002  0.000000000  ]
x_rac = [ -0.560000002 -0.055000000 -0.150000006  1.570799947  ]

Parameter Set: RA_JOINT_PARAMS
q_min           = [ -3.5314     -2.3953    -0.4324    -0.1742    ]
q_max           = [ 1.4585      1.307      4.0478     3.5887     ]
pot.b           = [ 1394.31     2175.06    955.99     1491.77    ]
pot.m           = [ -683.776    685.114    691.49     681.93     ]
current.b       = [ 2048        2048       2048       2048       ]
current.m       = [ 0.00032143  0.00032143 0.00032143 0.00032143 ]
vref.b          = [ 2048        2048       ]
vref.m          = [ 0.00225     0.00225    ]
gear_ratio      = [ -12500      16000      10000      4000       ]
rad_per_enc     = [ 3.1416      3.1416     3.1416     3.1416     ]
enc_offset      = [-0.544255018 0.824948013 0.237636998 0.305449992]
htr_power       = [ 14.1        3.1        11.2       11.2       ]
start_count     = [ 5           3          3          3          ]
nonstart_count. = [ 1           1          1          1          ]
direction_crnt  = [ 85          85         85         85         ]
direction_delay = [ 50          50         50         50         ]

Parameter Set: RA_CTRL_PARAMS
mtr_volt_max            = [ 30       30       30       30      ]
mtr_volt_min            = [ 1        1        1        1       ]
mtr_volt_init           = [ 0        0        0        0       ]
acc_max                 = [ 0.013962 0.010908 0.017453 0.043633 ]
vel_max                 = [ 0.020944 0.016362 0.02618  0.06545 ]
vel_min                 = [ 0        0        0        0       ]
eps_joint               = [ 0.03     0.03     0.03     0.05    ]
deadband_strt           = [ 3        3        3        3       ]
deadband_final_via_only = 1
deadband_end            = [ 0.001    0.001    0.001    0.001   ]
eps_time                = 0.4
p_gain                  = [ 2750     3520     2200     880     ]
i_gain                  = [ 2291.7   2933.3   1833.3   733.33  ]
d_gain                  = [ 0        0        0        0       ]
filter_p_gain           = 0.0025
filter_i_gain           = 0.0127
loop_time               = 0.1
loop_time_cooldown      = 0.2
delta_via_period        = 4
paci_timeout            = 1000
stop_to_no_op_time_delay = 5

Parameter Set: RA_LANDER_TO_RA
frame.x = [ 0 0 0 ]
frame.q = [ 1 0 0 0 ]

Parameter Set: RA_PATH_PARAMS
path.cart.type = 0
path.cart.error = 0.01
path.cart.delta = 0.05
path.joint_delta = 0.085
path.time_delta = 5

Parameter Set: RA_TASK_ALGO
[op_code algo_code delta_via_code] = [ 11 3 3 ]
[op_code algo_code delta_via_code] = [ 18 3 3 ]
[op_code algo_code delta_via_code] = [ 18 3 3 ]
[op_code algo_code delta_via_code] = [ 22 1 2 ]
[op_code algo_code delta_via_code] = [ 47 3 3 ]
[op_code algo_code delta_via_code] = [ 48 3 3 ]
[op_code algo_code delta_via_code] = [ 49 2 3 ]
[op_code algo_code delta_via_code] = [ 0 0 0 ]
[op_code algo_code delta_via_code] = [ 0 0 0 ]
[op_code algo_code delta_via_code] = [ 0 0 0 ]
[op_code algo_code delta_via_code] = [ 0 0 0 ]
[op_code algo_code delta_via_code] = [ 0 0 0 ]

Parameter Set: RA_ACT_ALGO
[op_code algo_code delta_via_code] = [ 17 2 3 ]
[op_code algo_code delta_via_code] = [ 19 2 3 ]
[op_code algo_code delta_via_code] = [ 20 3 3 ]
delta_via_user = [ 0 0 -1 ]
dvia_thresh = 0.01

Parameter Set: RA_TAU_PARAMS
limit    = [ 26        91        53        10        ]
thresh_a = [ 26        91        53        10        ]
thresh_c = [ 35        120       65        10.5      ]
thresh_f = [ 35        120       65        10.5      ]
thresh_d = [ 29.125    37.28     23.3      9.32      ]
fit_nl   = [ 2         2         2         2         ]
c_nl_0   = [ 0.014134  0.016033  0.014041  0.0054075 ]
c_nl_1   = [ 0.0021647 0.0008571 0.0007949 0.0078765 ]
c_nl_2   = [ 0.028697  0.052189  0.052205  0.0078644 ]
c_nl_3   = [ 0.0081567 0.0115545 0.009798  0.0041967 ]
temp.b   = [ 2525      2525      2525      2525      613.327 ]
temp.m   = [ 0.2266    0.2259    0.2266    0.2283    0.4469  ]
mtr_volt_max = [ 30    30        30        30        ]

Parameter Set: RA_TAU_PARAMS2
current_limit = [ 110    260    210    110    ]
torque_limit  = [ 35     120    65     10.5   ]
no_load_volt  = [ 0      0      0      0      ]
current_delta = [ 1      1      1      1      ]
tau_detent    = [ 29.125 37.28  23.3   9.32   ]
speed_detent  = [ 0.018  0.0098 0.0158 0.048  ]
fit_ka        = [ 1      1      1      1      ]
c_ka_0        = [ 468.72 574.79 371.6  116.53 ]
c_ka_1        = [ 0      0      0      0      ]
c_ka_2        = [ 0      0      0      0      ]
c_ka_3        = [ 0      0      0      0      ]
c_ka_4        = [ 0      0      0      0      ]

Parameter Set: RA_SCIENCE_DATA_PERIOD
science_data_period = 1

Parameter Set: RA_FAULT_DETECT
enc_pot_delta       = [ 0.1 0.1 0.1 0.1 ]
runaway_joint_delta = 0.1745
runaway_pos_delta   = 0.1
runaway_ori_delta   = 3.14
runaway_time_delta  = 5
joint_delta         = [ 0.034 0.034 0.034 0.034 ]
vref_nominal        = [ 4.5 -4.5 ]
vref_delta          = [ 0.03 0.03 ]
enc_delta           = 2
pot_delta           = 20
tau                 = [ 10 29.2 17.2 3 ]
motor_samples       = 100
current_epsilon     = 1
heater_time         = [ 1200 1200 180 180 ]
temp_delta          = [ 20 20 20 20 ]
impeded_samples     = [ 2 2 2 2 ]
pot_samples         = 20
encoder_samples     = 20
enc_pot_samples     = 2
vref_samples        = 3
kinematic_samples   = 2
heater_rtd_samples  = 3
htr_crnt            = [ 120 80 200 200 ]
htr_crnt_offset     = 2048
power_30v_samples   = 10
stopped_samples     = 100
stalled_samples     = 100
deflection_limit    = 0.5
subtrench_attempts  = 2
dvia_mag_limit      = 0.4
default_cmd_token   = 1
lander_tol          = 0.015

Parameter Set: RA_TASK_C
calibrate.home    = [-3.313 -2.21 -0.401 0.2]
calibrate.angle   = [ 0.2  0.2  0.2  0.2 ]
calibrate.current = [ 30  120  40  18 ]
calibrate.time    = [ 40  40  40  40 ]
calibrate.delta   = [ 0  0  0  0 ]

Parameter Set: RA_TASK_DT
dig_trench.height               = -0.2
dig_trench.[depth width length] = [ 0.002 0.073 0.25]
dig_trench.corner               = 0.15
dig_trench.scoop_angle          = 0.125
dig_trench.carry_angle          = 2.5
dig_trench.dump_angle           = 7.7125
dig_trench.return_angle         = 2
dig_trench.way_point            = [ 0.1  0.1  0  ]

Parameter Set: RA_TASK_SC
scrape.guard_angle = 1.629
scrape.guard_depth = 0.1
scrape.rake = [ 0 0 1.5368]
scrape.backoff = 0.06
scrape.height_initial = 0

Parameter Set: RA_COMPRESS_PARAMS
compress.wSyncInterval = 1024
compress.wBlockSize = 16
compress.wSegmentSize = 1024
compress.type = 0

Parameter Set: RA_MAX_FAULTS
max_fault.ace_reset      = 0
max_fault.motion_impeded = 4
max_fault.file_io        = 0
max_fault.paci           = 0
max_fault.tv_power       = 0
max_fault.stopped        = 3
max_fault.stalled        = 3
max_fault.overheat       = 3

Parameter Set: RA_FAULT_PARAMS
fault_params.dt_backup                 = 0.03
fault_params.scr_initial               = 0.005
fault_params.scr_delta                 = 0.001
fault_params.scr_total                 = 0.003
fault_params.ignore_col_blade_1        = 0
fault_params.ignore_col_blade_2        = 0
fault_params.ignore_col_rac            = 0
fault_params.ignore_col_scoop          = 0
fault_params.ignore_col_wrist          = 0
fault_params.ignore_col_grapple_attach = 0
fault_params.ignore_col_grapple        = 0
fault_params.ignore_col_seis           = 0
fault_params.ignore_col_wts            = 0
fault_params.ignore_col_hp3            = 0

Parameter Set: RA_POWER_STATES
power_states.power = [ 11 18 43]
eps_switch = 0

Parameter Set: RA_GRAVITY
gravity_params.acc_g = 3.711
gravity_params.grav_vect = [0.046825 -0.051123 0.997594]

Parameter Set: RA_DEFL_GENERAL
defl_params.enable_abs = 1
defl_params.enable_rel = 0
defl_params.enable_tool = 0
defl_params.enable_jnt_abs = 0
defl_params.enable_jnt_rel = 0
seis_mass = 8.900000
wts_mass = 7.300000
hp3_mass = 2.700000
compliance_scale = 1.092301

Parameter Set: RA_DEFL_LINK_0
vCm = [ 3.020000e-25 4.940000e-24 7.990000e-24
     -3.060000e-24 3.750000e-25 7.010000e-24
      4.930000e-25 5.290000e-24 -8.830000e-26]
wCm = [ 8.850000e-08 -2.280000e-25 7.170000e-24
      1.050000e-23 8.850000e-08 -5.630000e-24
      7.840000e-24 -6.390000e-24 8.850000e-08]

Parameter Set: RA_DEFL_LINK_1
mass = 0.509
cm_x = 0.025
cm_y = 0.0579
cm_z = -0.0556
vCf = [ 3.840000e-08 2.310000e-08 -2.730000e-21
      2.310000e-08 2.250000e-08 -2.010000e-21
     -4.050000e-21 -2.900000e-21 3.060000e-07 ]
wCf = [ 9.620000e-22 -5.420000e-09 -8.470000e-07
      5.420000e-09 1.060000e-19 -9.820000e-06
      8.470000e-07 6.030000e-07 -7.470000e-20 ]
vCm = [-2.520000e-20 5.420000e-09 8.470000e-07
     -5.420000e-09 9.950000e-20 6.030000e-07
     -8.470000e-07 -9.820000e-06 -1.050000e-19]
wCm = [ 2.220000e-05 5.130000e-18 1.820000e-20
      6.060000e-18 3.603190e-04 3.840000e-18
     -6.660000e-19 3.670000e-18 2.220000e-05]

Parameter Set: RA_DEFL_LINK_2
mass = 1.2381
cm_x = 0.708
cm_y = 0
cm_z = -0.0762
vCf = [ 6.180000e-06 -4.110000e-06 6.530000e-05
     -4.110000e-06 1.730570e-04 5.340000e-07
      6.530000e-05 5.340000e-07 7.940660e-04 ]
wCf = [-3.250000e-07 8.270000e-05 7.000000e-06
     -7.690000e-05 3.250000e-07 -8.573120e-04
     -6.870000e-06 2.152100e-04 -6.990000e-12 ]
vCm = [-3.250000e-07 -7.690000e-05 -6.870000e-06
      8.270000e-05 3.250000e-07 2.152100e-04
      7.000000e-06 -8.573120e-04 -6.990000e-12 ]
wCm = [ 1.085949e-03 4.260000e-06 -4.010000e-09
      4.260000e-06 1.008957e-03 -2.210000e-10
     - 4.010000e-09 -2.210000e-10 3.512170e-04]

Parameter Set: RA_DEFL_LINK_3_STOWED
vCm = [-4.290000e-31 5.950000e-08 -3.390000e-26
    -5.870000e-08 3.540000e-24 3.824210e-04
     6.670000e-29 -1.275284e-03 1.940000e-26 ]
wCm = [ 1.969914e-03 -1.120000e-21 9.440000e-09
    -9.370000e-29 1.791046e-03 -2.440000e-26
     9.440000e-09 5.300000e-24 7.513490e-04 ]

Parameter Set: RA_DEFL_LINK_3_UNSTOWED
mass = 1.4944
cm_x = 0.481
cm_y = 0.031
cm_z = -0.017
vCf = [ 1.020000e-07 -1.720000e-26 -4.830000e-08
     3.940000e-28 2.526130e-04 -2.830000e-24
    -4.830000e-08 9.850000e-27 1.019379e-03]
wCf = [-4.220000e-26 -5.870000e-08 8.920000e-22
     5.950000e-08 -1.240000e-26 -1.275284e-03
     5.940000e-28 3.824210e-04 -4.240000e-24 ]
vCm = [-4.290000e-31 5.950000e-08 -3.390000e-26
    -5.870000e-08 3.540000e-24 3.824210e-04
     6.670000e-29 -1.275284e-03 1.940000e-26 ]
wCm = [ 1.969914e-03 -1.120000e-21 9.440000e-09
    -9.370000e-29 1.791046e-03 -2.440000e-26
     9.440000e-09 5.300000e-24 7.513490e-04]

Parameter Set: RA_DEFL_LINK_4_STOWED
mass = 0.1481
cm_x = 0.0114
cm_y = -0.0673
cm_z = -0.008
vCf = [ 5.710000e-09 -2.160000e-17 1.840000e-18
     -2.160000e-17 5.710000e-09 2.650000e-18
      1.840000e-18 2.650000e-18 5.710000e-09]
wCf = [-1.220000e-35 -6.090000e-13 -2.140000e-10
      1.830000e-11 -2.150000e-37 1.490000e-10
      2.140000e-10 -4.960000e-12 9.290000e-36 ]
vCm = [-1.160000e-35 1.830000e-11 2.140000e-10
     -6.090000e-13 2.340000e-36 -4.960000e-12
     -2.140000e-10 1.490000e-10 1.240000e-35 ]
wCm = [ 4.930000e-05 -9.850000e-28 -0.000000e+00
     -9.850000e-28 1.475213e-03 1.230000e-28
     1.280000e-31 9.770000e-29 4.930000e-05 ]

Parameter Set: RA_DEFL_LINK_5
mass = 0
cm_x = 0
cm_y = 0
cm_z = 0
vCf = [ 0.000000e+00 0.000000e+00 0.000000e+00
      0.000000e+00 0.000000e+00 0.000000e+00
      0.000000e+00 0.000000e+00 0.000000e+00 ]
wCf = [ 0.000000e+00 0.000000e+00 0.000000e+00
      0.000000e+00 0.000000e+00 0.000000e+00
      0.000000e+00 0.000000e+00 0.000000e+00 ]
vCm = [ 0.000000e+00 0.000000e+00 0.000000e+00
      0.000000e+00 0.000000e+00 0.000000e+00
      0.000000e+00 0.000000e+00 0.000000e+00 ]
wCm = [ 0.000000e+00 0.000000e+00 0.000000e+00
      0.000000e+00 0.000000e+00 0.000000e+00
      0.000000e+00 0.000000e+00 0.000000e+00 ]

Parameter Set: RA_THERMAL
temp_min       = [-55      -55     -55     -55     -55 ]
temp_delta     = [ 20      20      20      20      20  ]
temp_max_rotor = [ 95      95      95      95      ]
temp_max_case  = [ 75      75      75      75      ]
temp_cooldown  = [ 45      45      45      45      ]
CM_r           = [ 0.1014  0.1014  0.1014  0.1014  ]
R_rtc          = [ 0.0885  0.0885  0.0885  0.0885  ]
l nl           = [ 0.008   0.008   0.008   0.008   ]
R_cal          = [ 42      42      42      42      ]
T_cal          = [ 20      20      20      20      ]
alpha          = [ 0.00393 0.00393 0.00393 0.00393 ]
filter_alpha = 0.05
filter_dt    = 900
filter_c_0   = 4.429
filter_c_1   = 0.154
filter_c_2   = 0
filter_c_3   = 0
filter_c_4   = 0

Parameter Set: RA_GRAPPLE_PARAMS
grapple_heater = 1
max_temperature = 106.0
overheat_persistence = 2
limit_switch_persistence = 2

Parameter Set: RA_ACTIVE_HOLD_PARAMS
active_hold = 0
hold_time = 5.0
move_time_multiple = 2.0

Parameter Set: PAYLOAD_COL_PARAMS
seis_q_(i,j,k,r) = [ 0.000000  0.000000  0.177944  0.984041 ]
seis_t_(x,y,z) = [ -0.408000  -0.319000  -0.334000  ]
wts_q_(i,j,k,r) = [ 0.000000  0.000000  1.0000000  ]
wts_t_(x,y,z) = [ -0.996000  -0.459000  -0.261000  ]
hp3_q_(i,j,k,r) = [ 0.000000  0.000000  -0.175796  0.984427 ]
hp3_t_(x,y,z) = [ -0.861000  -0.008000  -0.455000  ]
"""
"""SIS 5.1.3.1 to 5.1.3.32: what survives; the SCLK line is ours (the SIS only says that there is one)."""

LOST = """
Parameter Set: RA_ARM_PARAMS
x_scoop = [ -0.010000000  0.000000000  0.150000000  0.000000000  ]
x_wrist = [ 0.000000000  0.000000000  0.000000000  0.000000000  ]
x_grapple_attach = [ 0.000000000  -0.038300000  0.005000000  0.000000000  ]
dist_grapple = [ 0 0 0.299 ]
dist_seis = [ 0 0 0.45 ]
dist_wts = [ 0 0 0.55 ]
dist_hp3 = [ 0 0 0.5 ]

Parameter Set: RA_CTRL_PARAMS
loop_time_thermostat = 1
power_on_time_delay = 2
off_count = 3

Parameter Set: RA_TAU_PARAMS
c_nl_4 = [ 0 0 0 0 ]

Parameter Set: RA_FAULT_DETECT
runaway_samples = 3
ace_cal_samples = 4
collision_mode = 2

Parameter Set: RA_DEFL_LINK_4_UNSTOWED
mass = 0.2
cm_x = 0.0114
"""
"""Values that the document lost, made up to have every set and key kind at hand."""

HEADER = (
    "#time(s),enc1(rad),enc2(rad),enc3(rad),enc4(rad),pot1(rad),pot2(rad),pot3(rad),pot4(rad),"
    "tcase1(C),tcase2(C),tcase3(C),tcase4(C),trotor1(C),trotor2(C),trotor3(C),trotor4(C),tgrapple(C),"
    "cur1(mA),cur2(mA),cur3(mA),cur4(mA),volt1(V),volt2(V),volt3(V),volt4(V),stat,tool,"
    "x_enc(m),y_enc(m),z_enc(m),th_enc(m),x_pot(m),y_pot(m),z_pot(m),th_pot(m),"
    "x_enc_defl(m),y_enc_defl(m),z_enc_defl(m),th_enc_defl(m),"
    "x_pot_defl(m),y_pot_defl(m),z_pot_defl(m),th_pot_defl(m),"
    "v1(rad/s),v2(rad/s),v3(rad/s),v4(rad/s),tau1(N-m),tau2(N-m),tau3(N-m),tau4(N-m),"
    "Fr(N),Ft(N),Fz(N),htr_cur(mA),grapple_phase"
)
"""SIS Table 12: 57 columns."""

SNAPSHOT = (
    "615088547.8,-2.84,-1.9231,2.3173,-0.0007,-2.8391,-1.9224,2.3202,0.0011,"
    "-52.2,-52.7,-50.1,-51.2,-52.2227,-52.7207,-50.0872,-51.1683,-26.9399,"
    "0,-0.3125,-0.3125,-0.3125,0,0,0,0,0,5,"
    "1.3633,0.0043,0.4935,1.5014,1.3585,0.0026,0.5034,1.5014,"
    "1.3619,0.0032,0.4970,1.5014,1.3571,0.0016,0.5068,1.5014,"
    "0.0024,0.0006,0.001,0.0025,0,14.5451,-41.0253,0,"
    "-3.6661,-0.7414,-0.0603,0.0015,2"
)
"""SIS Table 12, last column; tcase and cut-off digits are made up, and the time is the name's SCLK."""

MOVING = (
    "615088548,-2.83,-1.9,2.3,0,-2.83,-1.9,2.3,0,-52,-52,-50,-51,-51,-51,-49,-50,-26.9399,"
    "10,20,30,40,21,20,19,18,0x21321,9,1,0,0.5,1.5014,1,0,0.5,1.5014,1,0,0.5,1.5014,1,0,0.5,1.5014,"
    "0.01,0.01,0.01,0.01,1,2,3,4,-99999.0000,-99999.0000,-99999.0000,0.4701,5"
)
"""Motor 1 on, joint 2 turns negative, joints 1 and 2 over current, brake 1 off, heater 2 on (Table 13)."""

COORDINATES = "x_coord(mm),y_coord(mm),z_coord(mm)\r\n-775.084,-283.360,-956.056\r\n"
"""SIS 5.1.4 with the numbers of Table 7."""


def science(header: str = HEADER, rows: tuple[str, ...] = (SNAPSHOT, MOVING)) -> str:
    """A SciHi or SciLo table."""
    return "\r\n".join([header, *rows]) + "\r\n"


def with_elapsed_time(line: str, value: str) -> str:
    """A line of the label's 58 columns: one more after the time."""
    time, _, rest = line.partition(",")
    return f"{time},{value},{rest}"


def history(points: int = 300, latest_index: int = 295) -> str:
    """SIS 5.1.2: points in descending order, each with arm and system status, in a ring of 300."""
    blocks: list[str] = []
    for point in range(points - 1, -1, -1):
        blocks.append(f"{point} points before latest (index = {(latest_index - point) % 300}):")
        blocks.append(ARM_STATUS.replace("594733695.9", f"{602050000 - point}.5"))
        blocks.append(SYSTEM_STATUS.replace("602050014.0", f"{602050001 - point}.0"))
    return "\n".join(blocks)


def label(fields: tuple[tuple[str, str, str], ...], records: int = 2) -> str:
    """SIS appendix E, shortened to what describes the table: (name, data type, unit) per field."""
    constant = "<Special_Constants><invalid_constant>-99999.0000</invalid_constant></Special_Constants>"
    constants = dict.fromkeys(("Fr", "Ft", "Fz"), constant)
    described = "".join(
        f"<Field_Delimited><name>{name}</name><data_type>{kind}</data_type><unit>{unit}</unit>"
        f"<description>{name}</description>{constants.get(name, '')}</Field_Delimited>"
        for name, kind, unit in fields
    )
    return (
        '<?xml version="1.0" encoding="UTF-8" standalone="no"?>'
        '<Product_Observational xmlns="http://pds.nasa.gov/pds4/pds/v1"><Identification_Area>'
        "<title>IDA Science High Data Product</title></Identification_Area><File_Area_Observational>"
        f"<File><file_name>{SCIHI_NAME}</file_name></File>"
        '<Header><offset unit="byte">0</offset><object_length unit="byte">678</object_length></Header>'
        '<Table_Delimited><offset unit="byte">678</offset>'
        f"<records>{records}</records><record_delimiter>Carriage-Return Line-Feed</record_delimiter>"
        f"<field_delimiter>Comma</field_delimiter><Record_Delimited><fields>{len(fields)}</fields>"
        f"{described}</Record_Delimited></Table_Delimited></File_Area_Observational></Product_Observational>"
    )


def write_sample(folder: Path) -> Path:
    """Write one product of every kind, in two sol folders."""
    for sol in ("sol0062", "sol0209"):
        (folder / sol).mkdir(parents=True)
    (folder / "sol0062" / ARM_NAME).write_text(ARM_STATUS)
    (folder / "sol0062" / SYSTEM_NAME).write_text(SYSTEM_STATUS)
    (folder / "sol0062" / HISTORY_NAME).write_text(history(5))
    (folder / "sol0062" / PARAMETER_NAME).write_text(PARAMETERS + LOST)
    (folder / "sol0209" / SCIHI_NAME).write_bytes(science().encode())
    (folder / "sol0209" / SCILO_NAME).write_bytes(science(rows=(MOVING,)).encode())
    (folder / "ida_sc_coordinates.csv").write_bytes(COORDINATES.encode())
    return folder
