"""Speed, memory and bytes on disk, as ratios within one run where the machine could decide."""
