"""Reading runs for review: from a folder of the command line, or from the service's own."""
