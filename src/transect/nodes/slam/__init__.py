"""Know the place again: a node for each kind of sensor, its front end beside it, one `backend/`."""
