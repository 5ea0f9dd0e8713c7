"""Actuators: the only code that acts. Imported by ``sink.__main__`` and ``hardware.direct``."""
