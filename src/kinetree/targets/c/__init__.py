"""C code of Programs and kernels: functions of plain arrays, without allocation and with math.h alone."""
