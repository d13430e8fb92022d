"""The workshop: makes, checks and (later) trains the model folders that the product loads.

Never installed with the wheel.
"""
