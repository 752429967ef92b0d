"""What engines and benchmark tools print, read back: start-up logs and results of load tests."""
