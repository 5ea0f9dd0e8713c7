"""A run as one file for people who get a mail: HTML without anything outside it, and PDF.

Both are drawn from one view model, so neither says what the other does not.
"""
