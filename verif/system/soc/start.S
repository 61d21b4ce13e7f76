/* Reset: the stack pointer, variables that begin with 0, main, the exit code. */
    .section .text.start
    .globl start
start:
    la sp, stack_top
    la t0, bss_start
    la t1, bss_end
1:  bgeu t0, t1, 2f
    sw zero, 0(t0)
    addi t0, t0, 4
    j 1b
2:  call main
    li t0, 0x80000004
    sw a0, 0(t0)
3:  j 3b
