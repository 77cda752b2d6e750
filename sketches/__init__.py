"""What can be kept of a million values in a few kilobytes?"""
