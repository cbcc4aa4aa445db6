"""Command lines of llama.cpp's family, judged without running them: spelling, what is ignored, documented traps."""
