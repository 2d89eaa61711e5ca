"""Export: functions as files for other machines, each with its documentation and a test that the receiver can run."""
