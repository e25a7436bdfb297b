"""The ARCHES Mount Etna data set (AMEDS): traverses and rock pickings of ESA's rover Interact.

- `folders`: the format of its recordings, a folder or zip of CSV, JPEG, PCD and films
- `interact.yaml`, `robot/`: the robot, its arms, its moving frames, manoeuvres and the phases of a picking
- `world/`: simulated drives on Mount Etna
- `catalogue`: the nine traverses and two rock pickings
- `slip`: `transect table slip` and `transect draw slip`; `slip_figure`: its figure
"""
