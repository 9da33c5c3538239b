"""The models behind one door: the built-in planner and, lazily, litellm."""
