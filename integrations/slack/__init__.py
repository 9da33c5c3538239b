"""The Slack bot: an event becomes a job before it is acknowledged; a worker answers it once, however often it comes."""
