"""What is asked of a System besides its functions: do all routes agree, what makes a torque, what does it cost."""
