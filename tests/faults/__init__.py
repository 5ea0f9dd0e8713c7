"""What the sink does when something around it is broken, as a table that is published."""
