"""The programs of a camera bench: preflight, recipient, and the launcher of a camera chain."""
