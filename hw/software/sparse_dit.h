/*
 * Driver of the sparse DiT accelerator: C99, no allocation, no operating system.
 *
 * Two generated headers belong to it: sparse_dit_commands.h (python -m hw commands) and sparse_dit_registers.h
 * (python -m hw registers). How the machine behaves is in docs/system.md.
 *
 *     struct dit_device device;
 *     dit_probe(&device, &port);                           what is there, which sizes it has
 *     dit_open(&device, ring, address_of_ring, 6);         a ring of 64 descriptors
 *     dit_submit(&device, &descriptor, NULL);              any number of times
 *     dit_wait(&device, limit);                            until all are complete
 *
 * Functions return 0 or a negative enum dit_result; dit_text() tells what it means.
 */
#ifndef SPARSE_DIT_H
#define SPARSE_DIT_H

#include <stddef.h>
#include <stdint.h>

#include "sparse_dit_commands.h"
#include "sparse_dit_registers.h"

#ifdef __cplusplus
extern "C" {
#endif

enum dit_result {
    DIT_OK = 0,
    DIT_NOT_FOUND = -1,     /* MAGIC is not that of the accelerator */
    DIT_WRONG_VERSION = -2, /* another major version of the registers */
    DIT_BAD_ARGUMENT = -3,  /* an argument is not legal */
    DIT_FULL = -4,          /* the ring has no free slot: wait, then submit again */
    DIT_TIMEOUT = -5,       /* the limit was reached before all was complete */
    DIT_STOPPED = -6,       /* the machine has stopped with an error: dit_get_failure, then dit_clear */
    DIT_NOT_OPEN = -7,      /* no ring: dit_open first */
    DIT_IS_OPEN = -8        /* a ring is in use: dit_close first */
};

/* How registers and memory are reached. `barrier` makes earlier writes to memory visible to the machine before later
 * writes to registers; `relax` is called between two polls (it may sleep until the interrupt). Both may be NULL. */
struct dit_port {
    uint32_t (*read)(void *context, uint32_t offset);
    void (*write)(void *context, uint32_t offset, uint32_t value);
    void (*barrier)(void *context);
    void (*relax)(void *context);
    void *context;
};

/* The sizes of this accelerator, as its registers tell them. */
struct dit_sizes {
    uint32_t n_banks, n_lanes, simd_lanes, row_word, max_tokens, max_head_dim, max_dim, n_masks, rows_a_mask, key_slots;
    uint32_t imem_depth, wmem_depth, vmem_depth, omem_depth, pmem_depth, latent_length;
    uint32_t data_width, address_width, max_ring_log2;
};

struct dit_device {
    struct dit_port port;
    struct dit_sizes sizes;
    volatile uint32_t *ring; /* NULL: none is open */
    uint32_t slots, tail;
};

/* A command and, for LOAD, STORE and CTR, where its data are. */
struct dit_descriptor {
    struct dit_command command;
    uint32_t flags; /* DIT_DESCRIPTOR_FENCE, DIT_DESCRIPTOR_INTERRUPT */
    uint32_t number;
    uint32_t length, pitch;
    uint64_t address;
};

struct dit_failure {
    uint32_t code;   /* enum dit_stop */
    uint32_t reason; /* of DIT_STOP_REFUSED: enum dit_error of the core */
    uint32_t number; /* of the descriptor */
    uint64_t address;
};

/* Finds the accelerator and reads its sizes. */
int dit_probe(struct dit_device *device, const struct dit_port *port);

/* Uses 2^log2 slots of 64 bytes as ring: `ring` for the program, `address` for the machine (a multiple of 64). */
int dit_open(struct dit_device *device, volatile void *ring, uint64_t address, uint32_t log2);

/* Waits until nothing is under way and stops fetching; `limit` as for dit_wait. */
int dit_close(struct dit_device *device, uint32_t limit);

/* Puts a descriptor into the ring and starts it. `position`, if not NULL, is what dit_is_complete takes. */
int dit_submit(struct dit_device *device, const struct dit_descriptor *descriptor, uint32_t *position);

/* 1: complete, in memory; 0: not yet; negative: stopped. */
int dit_is_complete(const struct dit_device *device, uint32_t position);

/* Polls until all descriptors are complete, at most `limit` times; 0 is no limit. */
int dit_wait(const struct dit_device *device, uint32_t limit);

/* Executes one descriptor without a ring and waits for it. */
int dit_execute(const struct dit_device *device, const struct dit_descriptor *descriptor, uint32_t limit);

/* Interrupts: enable those of a mask of events; take (read and clear) what has come. */
void dit_enable_interrupts(const struct dit_device *device, uint32_t events);
uint32_t dit_take_interrupts(const struct dit_device *device);

/* Why the machine has stopped; 0 if it has not, else DIT_STOPPED. */
int dit_get_failure(const struct dit_device *device, struct dit_failure *failure);

/* Drops all that was not begun and makes the machine ready again; a ring stays open, empty. */
int dit_clear(struct dit_device *device, uint32_t limit);

/* Bytes that `length` of a descriptor must be for a command; 0 for those that move no data. */
uint32_t dit_length(const struct dit_sizes *sizes, const struct dit_command *command);

/* A descriptor for a command with its length, rows without gaps in memory, and no flags. */
struct dit_descriptor dit_descriptor_for(const struct dit_sizes *sizes, const struct dit_command *command,
                                         uint64_t address);

const char *dit_text(int result);
const char *dit_stop_text(uint32_t code);

#ifdef __cplusplus
}
#endif

#endif
