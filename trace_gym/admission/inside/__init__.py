"""Code that runs in a sandbox beside a program. Its text is handed over; it imports nothing of ours."""
