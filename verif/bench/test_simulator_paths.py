"""What a simulator cannot work with is said before it is started."""

import pytest

from verif.bench import simulator


@pytest.mark.parametrize("folder", ["my project", "tab\tin it"])
def test_spaces_in_the_path_of_a_verilator_build(tmp_path, monkeypatch, folder):
    monkeypatch.setattr(simulator, "BUILD_ROOT", tmp_path / folder)
    with pytest.raises(simulator.SimulatorError, match="the build folder has a space in its path.*use SIM=icarus"):
        simulator.build({"a.v": "module a;\nendmodule\n"}, "a", "verilator")
    assert not (tmp_path / folder).exists()
