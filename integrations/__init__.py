"""One adapter a surface or outside world; each translates, none computes."""
