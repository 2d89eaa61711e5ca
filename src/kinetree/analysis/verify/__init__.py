"""Other libraries as routes, each built joint by joint from a Mechanism; both are optional."""
