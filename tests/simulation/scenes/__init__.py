"""The hard cases, one scene each: a function that plays it. `..scene` says what a scene is."""
