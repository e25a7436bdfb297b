"""PDS4 archive of InSight's arm as specified by the InSight SIS: collections, names and labels.

- `bundle`: the bundle of a recording with the collections of Table 10, and its archive profile
- `products`: SciHi and SciLo tables with the 58 fields of appendix E, coordinates, pictures, and label
  contexts
- `printed`: the label of appendix E as printed, with its errors
"""
