"""Files and commands that start a job: torchrun, accelerate, DeepSpeed, torchtitan, axolotl, SkyPilot, Slurm."""
