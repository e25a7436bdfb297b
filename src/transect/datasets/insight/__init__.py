"""InSight's Instrument Deployment Arm (IDA): telemetry, models of the arm, simulated sols, PDS4 archive.

- `products`, `packets`: the formats of its archived products (`ida`) and of its packets (`ccsds`)
- `ida.yaml`, `robot/`: the arm, its kinematics, sag, motors, temperatures, forces and faults
- `world/`: simulated sols of the arm, with its flight software
- `archive/`: the PDS4 bundle of its archive SIS
- `tables`: `transect table arm` and `transect table faults`
"""
