"""Results for people: summary, tables, figures, and the words at the end of a command."""
