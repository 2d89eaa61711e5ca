"""The web page: a replay, a live page and the studio's front end in one, written by Python."""
