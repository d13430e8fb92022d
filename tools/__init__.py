"""Tools of the workshop: real servers to test on or to try, and the counts of ``make house``."""
