// Purpose: over two lines, and a
// full stop.
