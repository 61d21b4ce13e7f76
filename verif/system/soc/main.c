/*
 * Runs a list of descriptors, which lies in memory with its data, through the driver, and compares what was stored with
 * what the golden model stored. workload.h says where everything is.
 */
#include "sparse_dit.h"
#include "workload.h"

#define REGISTERS 0x40000000u
#define CONSOLE (*(volatile uint32_t *)0x80000000u)
#define RING_LOG2 4

static uint32_t read_register(void *context, uint32_t offset)
{
    (void)context;
    return *(volatile uint32_t *)(REGISTERS + offset);
}

static void write_register(void *context, uint32_t offset, uint32_t value)
{
    (void)context;
    *(volatile uint32_t *)(REGISTERS + offset) = value;
}

/* What a compiler may call for structures. */
void *memcpy(void *to, const void *from, size_t count)
{
    for (size_t index = 0; index < count; index++)
        ((uint8_t *)to)[index] = ((const uint8_t *)from)[index];
    return to;
}

void *memset(void *to, int value, size_t count)
{
    for (size_t index = 0; index < count; index++)
        ((uint8_t *)to)[index] = (uint8_t)value;
    return to;
}

static void print(const char *text)
{
    while (*text)
        CONSOLE = (uint8_t)*text++;
}

static void print_number(uint32_t number)
{
    char digits[11];
    int place = 10;

    digits[place] = 0;
    do
        digits[--place] = (char)('0' + number % 10);
    while (number /= 10);
    print(digits + place);
}

static void print_count(const char *name, uint32_t number)
{
    print(name);
    print_number(number);
    print("\n");
}

static int fail(const struct dit_device *device, int result)
{
    struct dit_failure failure;

    print("failed: ");
    print(dit_text(result));
    print("\n");
    if (dit_get_failure(device, &failure)) {
        print(dit_stop_text(failure.code));
        print_count("\ndescriptor ", failure.number);
        print_count("reason ", failure.reason);
    }
    return 1;
}

static void decode(const uint32_t *word, struct dit_descriptor *descriptor)
{
    dit_decode(word, &descriptor->command);
    descriptor->flags = word[DIT_DESCRIPTOR_FLAGS_WORD];
    descriptor->number = word[DIT_DESCRIPTOR_NUMBER_WORD];
    descriptor->length = word[DIT_DESCRIPTOR_LENGTH_WORD];
    descriptor->pitch = word[DIT_DESCRIPTOR_PITCH_WORD];
    descriptor->address = word[DIT_DESCRIPTOR_ADDRESS_WORD];
}

int main(void)
{
    static const struct dit_port port = {.read = read_register, .write = write_register};
    static struct dit_device device;
    const uint32_t *word = (const uint32_t *)WORKLOAD_DESCRIPTORS;
    uint32_t wrong = 0, bytes = 0;
    int result = dit_probe(&device, &port);

    if (result)
        return fail(&device, result);
    print("accelerator: ");
    print_number(device.sizes.n_banks);
    print_count(" banks, lanes: ", device.sizes.n_lanes);
    result = dit_open(&device, (void *)WORKLOAD_RING, WORKLOAD_RING, RING_LOG2);
    for (uint32_t number = 0; !result && number < WORKLOAD_COUNT; number++, word += DIT_DESCRIPTOR_WORDS) {
        struct dit_descriptor descriptor;

        decode(word, &descriptor);
        do
            result = dit_submit(&device, &descriptor, NULL);
        while (result == DIT_FULL);
    }
    if (!result)
        result = dit_wait(&device, 0);
    if (result)
        return fail(&device, result);
    for (uint32_t range = 0; range < WORKLOAD_RANGES; range++) {
        const uint16_t *found = (const uint16_t *)workload_ranges[range].address;
        const uint16_t *expected = (const uint16_t *)workload_ranges[range].expected;

        for (uint32_t index = 0; index < workload_ranges[range].bytes / 2; index++)
            wrong += found[index] != expected[index];
        bytes += workload_ranges[range].bytes;
    }
    print_count("descriptors: ", read_register(NULL, DIT_REG_COUNT_DESCRIPTORS));
    print_count("clocks: ", read_register(NULL, DIT_REG_COUNT_CLOCKS));
    print_count("beats read: ", read_register(NULL, DIT_REG_COUNT_READ_BEATS));
    print_count("beats written: ", read_register(NULL, DIT_REG_COUNT_WRITE_BEATS));
    print_count("bytes compared: ", bytes);
    print_count("wrong words: ", wrong);
    return wrong ? 1 : 0;
}
