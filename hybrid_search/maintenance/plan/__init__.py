"""What indexing a user's own documents will take: measured on a sample of them, and computed for
any number.
"""
