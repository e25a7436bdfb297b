"""The archive of InSight's arm (document 002): its collections, names and labels, from files of the arm.

- `bundle`: the bundle of a recording, with the collections of Table 10
- `science`: SciHi and SciLo tables with the 58 fields of appendix E
- `others`: coordinates, pictures, copies
- `profile`: how `archive init` and `archive build` come to it
- `mission`: what labels say of the mission, and of times on its clocks
- `printed`: the label of appendix E as it is printed, with its mistakes
"""
