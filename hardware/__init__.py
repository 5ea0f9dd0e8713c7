"""What touches devices: actuators, sensors, the stub world, and the launcher of all processes."""
