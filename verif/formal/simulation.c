/* Evaluates a circuit for every combination of its enumerated inputs, 512 of them at once; see exhaustive.py.

   Generated before this text: the sizes N_INPUTS, N_LATCHES, N_FAILS, N_REACHES, N_RESULTS; latch_reset[]; the
   functions of the gates, called by evaluate(); N_PORTS enumerated ports with port_width[], port_size[],
   port_input[][] (which inputs are its bits); the inputs N_FREE, free_input[], that are random in every clock, the
   same for all lanes; and literal() of the outputs TAKEN and CHECKED. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t *table[N_PORTS];  /* the words of each port; of the last one, bit planes of blocks of 512 words */
static uint64_t position[N_PORTS];

static uint64_t state = 0x9E3779B97F4A7C15ull;
static uint64_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static W all(uint64_t bit) { return (W){} - (bit & 1); }

static int any(W word)
{
    for (int i = 0; i < 8; i++)
        if (word[i])
            return 1;
    return 0;
}

static void load(const char *path)
{
    FILE *file = fopen(path, "rb");
    for (int port = 0; port < N_PORTS; port++) {
        size_t count = port_size[port], words = port < N_PORTS - 1 ? count : (count + 511) / 512 * 8 * port_width[port];
        table[port] = aligned_alloc(64, (words * 8 + 63) / 64 * 64);
        if (!file || fread(table[port], 8, words, file) != words)
            exit(2);
    }
    fclose(file);
}

static void set_port(int port)
{
    int width = port_width[port];
    for (int bit = 0; bit < width; bit++)
        if (port_input[port][bit] >= 0) {
            W *input = &inputs[port_input[port][bit]];
            if (port < N_PORTS - 1)
                *input = all(table[port][position[port]] >> bit);
            else
                memcpy(input, table[port] + (position[port] * width + bit) * 8, 64);
        }
}

/* The next combination; returns how many of the ports, counted from the last one, have changed, 0 at the end. */
static int next(void)
{
    for (int port = N_PORTS - 1; port >= 0; port--) {
        uint64_t size = port < N_PORTS - 1 ? port_size[port] : (port_size[port] + 511) / 512;
        if (++position[port] < size)
            return N_PORTS - port;
        position[port] = 0;
    }
    return 0;
}

int main(int argc, char **argv)
{
    load(argv[1]);
    FILE *results = N_RESULTS ? fopen(argv[2], "wb") : 0;
    uint64_t blocks = 1, checked = 0, taken = 0, clocks = 0, reached[N_REACHES + 1] = {0};
    for (int port = 0; port < N_PORTS; port++) {
        blocks *= port < N_PORTS - 1 ? port_size[port] : (port_size[port] + 511) / 512;
        set_port(port);
    }
    for (int latch = 0; latch < N_LATCHES; latch++)
        latches[latch] = all(latch_reset[latch]);
    while (checked < blocks) {
        for (int input = 0; input < N_FREE; input++)
            inputs[free_input[input]] = all((random_bits() & 7) != 0);
        evaluate();
        for (int output = 0; output < N_FAILS; output++)
            if (any(fails[output])) {
                int lane = 0;
                while (!(fails[output][lane / 64] >> lane % 64 & 1))
                    lane++;
                printf("fails %d lane %d clock %llu block %llu\n", output, lane, (unsigned long long)clocks,
                       (unsigned long long)taken);
                for (int input = 0; input < N_INPUTS; input++)
                    printf("%d", (int)(inputs[input][lane / 64] >> lane % 64 & 1));
                printf("\n");
                return 1;
            }
        for (int output = 0; output < N_REACHES; output++)
            if (!reached[output])
                reached[output] = any(reaches[output]);
        if (is_checked[0] & 1) {
            checked++;
            if (results)
                fwrite(result, 64, N_RESULTS, results);
        }
        int changed = 0;
        if ((is_taken[0] & 1) && ++taken < blocks)
            changed = next();
        memcpy(latches, following, sizeof latches);
        for (int port = N_PORTS - changed; port < N_PORTS; port++)
            set_port(port);
        if (++clocks > 64 * blocks + 100000)
            break;
    }
    printf("checked %llu of %llu, taken %llu, reached", (unsigned long long)checked, (unsigned long long)blocks,
           (unsigned long long)taken);
    for (int output = 0; output < N_REACHES; output++)
        printf(" %d", (int)reached[output]);
    printf("\n");
    if (results)
        fclose(results);
    return 0;
}
