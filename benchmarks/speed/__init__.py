"""Speed, memory and bytes on disk, as ratios within one run wherever a machine's mood could decide."""
