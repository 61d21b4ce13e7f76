"""The command set's page is current, and the C header encodes and decodes as the golden definition does."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from golden.spec.commands import COMMAND_WIDTH, FIELDS, Command, Elementwise, ErrorCode, Memory, Opcode
from golden.spec.counters import COUNTERS
from hw.__main__ import main
from hw.cli import command_documents
from hw.cli.arguments import reporting_errors

COUNT = 300

PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include "sparse_dit_commands.h"

int main(void)
{
    struct dit_command command, again;
    uint32_t word[DIT_COMMAND_WORDS];
    unsigned long value[%(n_fields)d];
    printf("%%d %%d %%d %%d %%d\n", DIT_OPCODE_CTR, DIT_MEMORY_COUNTERS, DIT_ELEMENTWISE_GELU, DIT_ERROR_MASS_MISSING,
           DIT_COUNTER_STORE_BEATS);
    printf("%%d %%d %%d %%d\n", DIT_FLAG_RESTART, DIT_SCALE_WORD, DIT_SCALE_SHIFT, DIT_SCALE_WIDTH);
    for (;;) {
        for (int i = 0; i < %(n_fields)d; i++)
            if (scanf("%%lu", &value[i]) != 1)
                return 0;
        memset(&command, 0, sizeof command);
        memset(&again, 0, sizeof again);
%(assignments)s
        dit_encode(&command, word);
        for (int i = DIT_COMMAND_WORDS - 1; i >= 0; i--)
            printf("%%08lx", (unsigned long)word[i]);
        dit_decode(word, &again);
        printf(" %%d\n", memcmp(&command, &again, sizeof command));
    }
}
"""


def test_page_is_current():
    text = Path("docs", command_documents.MARKDOWN).read_text()
    assert text == command_documents.markdown(), "run: make readme"
    for names in (Opcode, Memory, Elementwise, ErrorCode):
        assert all(f"`{item.name}`" in text for item in names)
    assert all(f"`{name}`" in text for name in (*COUNTERS, *(item.name for item in FIELDS)))


@pytest.mark.parametrize("compiler, standard, suffix", [("gcc", "c99", ".c"), ("g++", "c++11", ".cpp")])
def test_header_in_a_compiled_program(compiler, standard, suffix, tmp_path, capsys):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    assert main(["commands", "-o", str(tmp_path)]) == 0
    assert command_documents.HEADER in capsys.readouterr().out
    assignments = "\n".join(f"        command.{item.name} = value[{place}];" for place, item in enumerate(FIELDS))
    source = tmp_path / f"program{suffix}"
    source.write_text(PROGRAM % {"n_fields": len(FIELDS), "assignments": assignments})
    program = tmp_path / "program"
    subprocess.run([compiler, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-o", program, source], check=True)

    rng = random.Random(1)
    commands = [
        Command(**{item.name: rng.choice([0, rng.getrandbits(item.width), (1 << item.width) - 1]) for item in FIELDS})
        for _ in range(COUNT)
    ]
    text = "\n".join(" ".join(str(getattr(command, item.name)) for item in FIELDS) for command in commands)
    lines = subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0].split() == [
        str(int(value))
        for value in (
            Opcode.CTR,
            Memory.COUNTERS,
            Elementwise.GELU,
            ErrorCode.MASS_MISSING,
            list(COUNTERS).index("store_beats"),
        )
    ]
    assert lines[1] == "16 7 0 19"
    assert lines[2:] == [f"{command.encode():0{COMMAND_WIDTH // 4}x} 0" for command in commands]
    for command in commands:
        assert Command.decode(command.encode()) == command


def test_output_folder_that_is_a_file(tmp_path, capsys):
    path = tmp_path / "file"
    path.write_text("")
    assert reporting_errors(lambda: main(["commands", "-o", str(path)])) == 2
    assert "cannot write to the output folder" in capsys.readouterr().err
