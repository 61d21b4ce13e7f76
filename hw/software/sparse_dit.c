#include "sparse_dit.h"

#define FIELD(value, name) (((value) & DIT_REG_##name##_MASK) >> DIT_REG_##name##_SHIFT)

static uint32_t get(const struct dit_device *device, uint32_t offset)
{
    return device->port.read(device->port.context, offset);
}

static void set(const struct dit_device *device, uint32_t offset, uint32_t value)
{
    device->port.write(device->port.context, offset, value);
}

static void relax(const struct dit_device *device)
{
    if (device->port.relax)
        device->port.relax(device->port.context);
}

static void barrier(const struct dit_device *device)
{
    if (device->port.barrier)
        device->port.barrier(device->port.context);
}

static int is_stopped(const struct dit_device *device)
{
    return (get(device, DIT_REG_STATUS) & DIT_REG_STATUS_STOPPED_MASK) != 0;
}

/* Polls STATUS until (STATUS & mask) == wanted. */
static int wait_for(const struct dit_device *device, uint32_t mask, uint32_t wanted, uint32_t limit)
{
    for (uint32_t polls = 0; !limit || polls < limit; polls++) {
        if ((get(device, DIT_REG_STATUS) & mask) == wanted)
            return DIT_OK;
        relax(device);
    }
    return DIT_TIMEOUT;
}

int dit_probe(struct dit_device *device, const struct dit_port *port)
{
    struct dit_sizes *sizes = &device->sizes;
    uint32_t value;

    if (!port->read || !port->write)
        return DIT_BAD_ARGUMENT;
    device->port = *port;
    device->ring = NULL;
    device->slots = device->tail = 0;
    if (get(device, DIT_REG_MAGIC) != DIT_REG_MAGIC_VALUE)
        return DIT_NOT_FOUND;
    if (get(device, DIT_REG_VERSION) >> 16 != DIT_REG_VERSION_VALUE >> 16)
        return DIT_WRONG_VERSION;
    value = get(device, DIT_REG_BANKS);
    sizes->n_banks = FIELD(value, BANKS_N_BANKS);
    sizes->n_lanes = FIELD(value, BANKS_N_LANES);
    value = get(device, DIT_REG_LANES);
    sizes->simd_lanes = FIELD(value, LANES_SIMD_LANES);
    sizes->row_word = FIELD(value, LANES_ROW_WORD);
    value = get(device, DIT_REG_TOKENS);
    sizes->max_tokens = FIELD(value, TOKENS_MAX_TOKENS);
    sizes->max_head_dim = FIELD(value, TOKENS_MAX_HEAD_DIM);
    value = get(device, DIT_REG_MASKS);
    sizes->n_masks = FIELD(value, MASKS_N_MASKS);
    sizes->rows_a_mask = FIELD(value, MASKS_ROWS_A_MASK);
    value = get(device, DIT_REG_ROWS);
    sizes->max_dim = FIELD(value, ROWS_MAX_DIM);
    sizes->key_slots = FIELD(value, ROWS_KEY_SLOTS);
    sizes->imem_depth = get(device, DIT_REG_IMEM_DEPTH);
    sizes->wmem_depth = get(device, DIT_REG_WMEM_DEPTH);
    sizes->vmem_depth = get(device, DIT_REG_VMEM_DEPTH);
    sizes->omem_depth = get(device, DIT_REG_OMEM_DEPTH);
    sizes->pmem_depth = get(device, DIT_REG_PMEM_DEPTH);
    sizes->latent_length = get(device, DIT_REG_LATENT_LENGTH);
    value = get(device, DIT_REG_BUS);
    sizes->data_width = FIELD(value, BUS_DATA_WIDTH);
    sizes->address_width = FIELD(value, BUS_ADDRESS_WIDTH);
    sizes->max_ring_log2 = FIELD(value, BUS_MAX_RING_LOG2);
    return DIT_OK;
}

int dit_open(struct dit_device *device, volatile void *ring, uint64_t address, uint32_t log2)
{
    if (device->ring)
        return DIT_IS_OPEN;
    if (!ring || address % (4 * DIT_DESCRIPTOR_WORDS) || !log2 || log2 > device->sizes.max_ring_log2)
        return DIT_BAD_ARGUMENT;
    if (device->sizes.address_width < 64 && address >> device->sizes.address_width)
        return DIT_BAD_ARGUMENT;
    if (is_stopped(device))
        return DIT_STOPPED;
    set(device, DIT_REG_RING_BASE_LOW, (uint32_t)address);
    set(device, DIT_REG_RING_BASE_HIGH, (uint32_t)(address >> 32));
    set(device, DIT_REG_RING_SIZE, log2);
    device->ring = ring;
    device->slots = UINT32_C(1) << log2;
    device->tail = 0;
    set(device, DIT_REG_CONTROL, DIT_REG_CONTROL_ENABLE_MASK);
    return DIT_OK;
}

int dit_close(struct dit_device *device, uint32_t limit)
{
    int result;

    if (!device->ring)
        return DIT_NOT_OPEN;
    result = dit_wait(device, limit);
    if (result != DIT_OK)
        return result;
    set(device, DIT_REG_CONTROL, 0);
    device->ring = NULL;
    return wait_for(device, DIT_REG_STATUS_IDLE_MASK, DIT_REG_STATUS_IDLE_MASK, limit);
}

static void encode(const struct dit_descriptor *descriptor, uint32_t *word)
{
    dit_encode(&descriptor->command, word);
    word[DIT_DESCRIPTOR_FLAGS_WORD] = descriptor->flags;
    word[DIT_DESCRIPTOR_NUMBER_WORD] = descriptor->number;
    word[DIT_DESCRIPTOR_LENGTH_WORD] = descriptor->length;
    word[DIT_DESCRIPTOR_PITCH_WORD] = descriptor->pitch;
    word[DIT_DESCRIPTOR_RESERVED_WORD] = 0;
    word[DIT_DESCRIPTOR_ADDRESS_WORD] = (uint32_t)descriptor->address;
    word[DIT_DESCRIPTOR_ADDRESS_WORD + 1] = (uint32_t)(descriptor->address >> 32);
}

int dit_submit(struct dit_device *device, const struct dit_descriptor *descriptor, uint32_t *position)
{
    uint32_t word[DIT_DESCRIPTOR_WORDS];
    volatile uint32_t *slot;

    if (!device->ring)
        return DIT_NOT_OPEN;
    if (is_stopped(device))
        return DIT_STOPPED;
    if (device->tail - get(device, DIT_REG_DONE) >= device->slots)
        return DIT_FULL;
    encode(descriptor, word);
    slot = device->ring + (size_t)(device->tail & (device->slots - 1)) * DIT_DESCRIPTOR_WORDS;
    for (uint32_t index = 0; index < DIT_DESCRIPTOR_WORDS; index++)
        slot[index] = word[index];
    barrier(device);
    device->tail++;
    set(device, DIT_REG_TAIL, device->tail);
    if (position)
        *position = device->tail;
    return DIT_OK;
}

int dit_is_complete(const struct dit_device *device, uint32_t position)
{
    if (!device->ring)
        return DIT_NOT_OPEN;
    if ((int32_t)(get(device, DIT_REG_DONE) - position) >= 0)
        return 1;
    return is_stopped(device) ? DIT_STOPPED : 0;
}

int dit_wait(const struct dit_device *device, uint32_t limit)
{
    for (uint32_t polls = 0; !limit || polls < limit; polls++) {
        int result = dit_is_complete(device, device->tail);

        if (result)
            return result < 0 ? result : DIT_OK;
        relax(device);
    }
    return DIT_TIMEOUT;
}

int dit_execute(const struct dit_device *device, const struct dit_descriptor *descriptor, uint32_t limit)
{
    uint32_t word[DIT_DESCRIPTOR_WORDS];
    int result;

    if (device->ring)
        return DIT_IS_OPEN;
    if (is_stopped(device))
        return DIT_STOPPED;
    result = wait_for(device, DIT_REG_STATUS_DIRECT_READY_MASK, DIT_REG_STATUS_DIRECT_READY_MASK, limit);
    if (result != DIT_OK)
        return result;
    encode(descriptor, word);
    for (uint32_t index = 0; index < DIT_DESCRIPTOR_WORDS; index++)
        set(device, DIT_REG_DIRECT + 4 * index, word[index]);
    barrier(device);
    set(device, DIT_REG_DIRECT_SUBMIT, 1);
    result = wait_for(device, DIT_REG_STATUS_IDLE_MASK, DIT_REG_STATUS_IDLE_MASK, limit);
    return result == DIT_OK && is_stopped(device) ? DIT_STOPPED : result;
}

void dit_enable_interrupts(const struct dit_device *device, uint32_t events)
{
    set(device, DIT_REG_INTERRUPT_ENABLE, events);
}

uint32_t dit_take_interrupts(const struct dit_device *device)
{
    uint32_t events = get(device, DIT_REG_INTERRUPT_STATUS);

    set(device, DIT_REG_INTERRUPT_STATUS, events);
    return events;
}

int dit_get_failure(const struct dit_device *device, struct dit_failure *failure)
{
    uint32_t value;

    if (!is_stopped(device))
        return DIT_OK;
    value = get(device, DIT_REG_ERROR);
    failure->code = FIELD(value, ERROR_CODE);
    failure->reason = FIELD(value, ERROR_REASON);
    failure->number = get(device, DIT_REG_ERROR_NUMBER);
    failure->address = get(device, DIT_REG_ERROR_ADDRESS_LOW) | (uint64_t)get(device, DIT_REG_ERROR_ADDRESS_HIGH) << 32;
    return DIT_STOPPED;
}

int dit_clear(struct dit_device *device, uint32_t limit)
{
    uint32_t enable = device->ring ? DIT_REG_CONTROL_ENABLE_MASK : 0;

    set(device, DIT_REG_CONTROL, enable | DIT_REG_CONTROL_CLEAR_MASK);
    device->tail = 0;
    return wait_for(device, DIT_REG_STATUS_CLEARING_MASK, 0, limit);
}

uint32_t dit_length(const struct dit_sizes *sizes, const struct dit_command *command)
{
    uint32_t rows = command->n_rows, banks = sizes->n_banks;

    if (command->opcode == DIT_OPCODE_CTR)
        return sizes->latent_length;
    if (command->opcode != DIT_OPCODE_LOAD && command->opcode != DIT_OPCODE_STORE)
        return 0;
    switch (command->function) {
    case DIT_MEMORY_ROWS:
        return 2 * (uint32_t)command->n_in;
    case DIT_MEMORY_WEIGHTS:
        return 2 * rows * banks * sizes->n_lanes;
    case DIT_MEMORY_VALUES:
        return 2 * rows * banks * sizes->simd_lanes;
    case DIT_MEMORY_SCORES:
    case DIT_MEMORY_PROBABILITIES:
        return 2 * rows * banks;
    case DIT_MEMORY_MASK:
        return rows * (banks * sizes->key_slots / 8);
    case DIT_MEMORY_TOKENS:
        return 2 * (command->opcode == DIT_OPCODE_LOAD ? rows : sizes->max_tokens + 1);
    case DIT_MEMORY_MASS:
        return 2 * rows;
    case DIT_MEMORY_COUNTERS:
        return 4 * DIT_COUNTERS;
    default:
        return 0;
    }
}

struct dit_descriptor dit_descriptor_for(const struct dit_sizes *sizes, const struct dit_command *command,
                                         uint64_t address)
{
    struct dit_descriptor descriptor = {0};

    descriptor.command = *command;
    descriptor.length = dit_length(sizes, command);
    descriptor.pitch = descriptor.length;
    descriptor.address = address;
    return descriptor;
}

const char *dit_text(int result)
{
    static const char *const texts[] = {
        "no error",
        "there is no accelerator",
        "the accelerator's registers have another major version",
        "an argument is not legal",
        "the ring is full",
        "the limit was reached",
        "the machine has stopped with an error",
        "no ring is open",
        "a ring is open",
    };
    uint32_t index = (uint32_t)-result;

    return index < sizeof texts / sizeof *texts ? texts[index] : "unknown result";
}

const char *dit_stop_text(uint32_t code)
{
    static const char *const texts[] = DIT_STOP_TEXTS;

    return code < sizeof texts / sizeof *texts ? texts[code] : "unknown error code";
}
