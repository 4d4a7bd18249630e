"""Killing the command line at random moments."""
