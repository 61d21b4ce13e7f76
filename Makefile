# `make verilog` and `make test` do all their own set-up; `make help` lists the targets.

PYTHON ?= python3
CONFIG ?= small
UNIT   ?=
PARAMS ?=
MEMORY ?= model
TARGET ?= asic
NAME   ?=
PREFIX ?=
VERIFY ?=
LIBERTY ?=
SIM    ?=

# What may stand on the command line; anything else would be ignored without a word.
VARIABLES := PYTHON CONFIG UNIT PARAMS MEMORY TARGET NAME PREFIX VERIFY LIBERTY SIM SEED QUICK UPDATE POINTS WORKLOAD TESTFLOAT
UNKNOWN := $(filter-out $(VARIABLES) SHELL MAKEFLAGS,$(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name))))
$(if $(UNKNOWN),$(error unknown variable $(firstword $(UNKNOWN)): legal are $(VARIABLES), in upper case))

# Which of them each target reads, beyond PYTHON; a test compares this with the rules.
TESTS := SIM SEED LIBERTY TESTFLOAT WORKLOAD
READS_verilog := CONFIG UNIT PARAMS MEMORY TARGET NAME PREFIX VERIFY
READS_test := $(TESTS)
READS_test-quick := $(TESTS)
READS_test-core := $(TESTS)
READS_coverage := UNIT
READS_mutate := UNIT SIM
READS_gates := UNIT SIM LIBERTY
READS_fuzz := SEED
READS_formal := UNIT
READS_formal-quick := UNIT
READS_synth := CONFIG UNIT PARAMS LIBERTY
READS_synth-check := LIBERTY QUICK UPDATE
READS_repair-table := LIBERTY POINTS
READS_power := CONFIG UNIT PARAMS SIM LIBERTY
READS_fpga := CONFIG UNIT PARAMS
READS_demo := SIM
READS_bench := SIM
READS_soc := CONFIG SIM
READS_figures := LIBERTY
GOALS := $(or $(MAKECMDGOALS),help)
READ := $(sort $(foreach goal,$(GOALS),$(READS_$(goal))))
UNREAD := $(filter-out PYTHON $(READ),$(foreach name,$(VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name))))
$(if $(UNREAD),$(error make $(GOALS) does not read $(firstword $(UNREAD)); it reads $(or $(READ),no variable)))

BUILD := build
VENV  := $(BUILD)/venv
PY    := $(VENV)/bin/python

# Nothing outside the project's folder is written: caches and temporary files stay in build/.
export XDG_CACHE_HOME := $(CURDIR)/$(BUILD)/cache
export PIP_NO_CACHE_DIR := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(BUILD)/pycache
# Bytecode is cached there even where the user's environment forbids it: hundreds of simulations import the same modules.
export PYTHONDONTWRITEBYTECODE :=
export TMPDIR := $(CURDIR)/$(BUILD)/tmp
ifneq ($(SIM),)
export SIM
endif

# PARAMS override the preset's values.
BLOCK := $(if $(UNIT),$(UNIT),all) --config $(CONFIG) $(if $(PARAMS),-p $(PARAMS))

# For the help; a test compares them with hw/registry.py.
ALL := dot_product_unit vector_unit token_selector hash_bank_mapper bitonic_sorter
FURTHER := dot_product_array spmm_array softmax_unit layer_norm_unit data_aligner quantizer_unit mixed_precision_array mixed_precision_core core accelerator

.DEFAULT_GOAL := help
.PHONY: help setup verilog test test-quick test-core coverage mutate gates fuzz formal formal-quick synth synth-check repair-table power fpga demo soc bench check readme figures list clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo 'Variables: CONFIG=tiny|small|edge|disc UNIT=block PARAMS="name=value ..." SIM=icarus|verilator SEED=number LIBERTY=file.lib[.gz]'
	@echo 'Of make verilog: MEMORY=model|macro TARGET=asic|fpga NAME=name of the top, PREFIX=text before every module name,'
	@echo '  VERIFY=1 proves the files that were written'
	@echo 'Of the tests: WORKLOAD=file.npz and TESTFLOAT=file.npz take other data'
	@echo 'UNIT: without it all, which is'
	@echo '  $(ALL);'
	@echo '  further blocks by name: $(FURTHER); UNIT=everything is every block'

setup: $(VENV)/ready ## the virtual environment with pinned versions (the other targets call it)

$(VENV)/ready: requirements.txt
	@mkdir -p $(BUILD)/tmp
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) must be Python 3.11 or newer (choose another with PYTHON=...)" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || \
	  { echo "error: $(PYTHON) lacks the venv module (on Debian and Ubuntu it is the package python3-venv)" >&2; exit 2; }
	$(PYTHON) -m venv --clear $(VENV)
	$(PY) -m pip install --quiet --progress-bar on --requirement requirements.txt
	@touch $@

verilog: $(VENV)/ready ## Verilog of the blocks below, in build/verilog/CONFIG, or of UNIT, in build/verilog/CONFIG/UNIT
	@mkdir -p $(BUILD)/tmp
	$(PY) -m hw verilog $(BLOCK) --memory $(MEMORY) --target $(TARGET) $(if $(NAME),--name "$(NAME)") $(if $(PREFIX),--prefix "$(PREFIX)") $(if $(VERIFY),--verify)

test: $(VENV)/ready ## every test but those of the core
	@mkdir -p $(BUILD)/tmp
	$(PY) -m pytest -n 2 --dist worksteal -m 'not core'

test-quick: $(VENV)/ready ## the tests that are fast
	@mkdir -p $(BUILD)/tmp
	$(PY) -m pytest -n 2 --dist worksteal -m 'not slow and not core'

test-core: $(VENV)/ready ## the core: its paths, random programs, a real head on edge
	@mkdir -p $(BUILD)/tmp
	$(PY) -m pytest -n 2 --dist worksteal -m core

coverage: $(VENV)/ready ## lines and toggles that the testbenches reach; renews docs/verification.md
	@mkdir -p $(BUILD)/tmp
	$(PY) -m verif.campaigns.coverage $(UNIT) --report

mutate: $(VENV)/ready ## 200 mutants of each block against its testbench; renews docs/verification.md
	@mkdir -p $(BUILD)/tmp
	$(PY) -m verif.campaigns.mutate $(UNIT) --report

gates: $(VENV)/ready ## the netlists under the testbenches; needs LIBERTY; renews docs/verification.md
	@mkdir -p $(BUILD)/tmp
	$(PY) -m verif.campaigns.gates $(UNIT) $(if $(LIBERTY),--liberty $(LIBERTY) --report)

fuzz: $(VENV)/ready ## 5,000 hostile command lines, configurations and files (another run: SEED=number)
	@mkdir -p $(BUILD)/tmp
	$(PY) -m verif.campaigns.fuzz $(if $(SEED),--seed $(SEED))

formal: $(VENV)/ready ## prove all properties, or those of UNIT; renews docs/formal.md
	@mkdir -p $(BUILD)/tmp
	$(PY) -m verif.formal $(if $(UNIT),$(UNIT),--table docs/formal.md)

formal-quick: $(VENV)/ready ## the properties that take seconds
	@mkdir -p $(BUILD)/tmp
	$(PY) -m verif.formal --quick $(UNIT)

synth: $(VENV)/ready ## area (and delay) of all blocks, or of UNIT, in build/synth
	@mkdir -p $(BUILD)/tmp
	$(PY) -m hw synth $(BLOCK) $(if $(LIBERTY),--liberty $(LIBERTY)) -o $(BUILD)/synth

synth-check: $(VENV)/ready ## area and delay against docs/synthesis_baseline.json; QUICK=1, UPDATE=1 writes a new one
	@mkdir -p $(BUILD)/tmp
	$(PY) -m hw synth-check $(if $(LIBERTY),--liberty $(LIBERTY)) $(if $(QUICK),--quick) $(if $(UPDATE),--update)

repair-table: $(VENV)/ready ## what timing repair gains on the points of synth-check; needs LIBERTY; POINTS="name ..."
	@mkdir -p $(BUILD)/tmp
	$(PY) -m hw synth-check --repair-table $(if $(LIBERTY),--liberty $(LIBERTY)) $(if $(POINTS),--only $(POINTS))

power: $(VENV)/ready ## leakage, dynamic power and energy a result of UNIT, by OpenSTA; needs LIBERTY
	@mkdir -p $(BUILD)/tmp
	@test -n "$(UNIT)" || { echo "error: power needs UNIT=block" >&2; exit 2; }
	$(PY) -m verif.campaigns.power $(BLOCK) $(if $(LIBERTY),--liberty $(LIBERTY)) -o $(BUILD)/power

fpga: $(VENV)/fpga-ready ## LUTs, DSPs, block RAMs and clock of all blocks, or of UNIT, on an ECP5
	@mkdir -p $(BUILD)/tmp
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PY) -m hw fpga $(BLOCK) -o $(BUILD)/fpga

$(VENV)/fpga-ready: $(VENV)/ready requirements-fpga.txt
	$(PY) -m pip install --quiet --progress-bar on --requirement requirements-fpga.txt
	@touch $@

demo: $(VENV)/demo-ready ## an attention head on the core's Verilog: figures and a picture in build/demo
	@mkdir -p $(BUILD)/tmp
	$(PY) -m verif.core.demo

bench: $(VENV)/ready ## workloads on the core's Verilog and in the cycle model; renews docs/bench.md
	@mkdir -p $(BUILD)/tmp
	$(PY) -m verif.core.benchmark

$(VENV)/demo-ready: $(VENV)/ready requirements-demo.txt
	$(PY) -m pip install --quiet --progress-bar on --requirement requirements-demo.txt
	@touch $@

soc: $(VENV)/soc-ready ## a RISC-V in Verilog runs a head on the accelerator; needs gcc-riscv64-unknown-elf
	@mkdir -p $(BUILD)/tmp
	$(PY) -m verif.system.soc --config $(CONFIG) $(if $(SIM),--sim $(SIM))

$(VENV)/soc-ready: $(VENV)/ready requirements-soc.txt
	$(PY) -m pip install --quiet --progress-bar on --requirement requirements-soc.txt
	@touch $@

check: $(VENV)/check-ready ## formatting, lint and types of the Python code
	$(VENV)/bin/ruff format --no-cache --check .
	$(VENV)/bin/ruff check --no-cache .
	$(VENV)/bin/pyright

$(VENV)/check-ready: $(VENV)/ready requirements-check.txt
	$(PY) -m pip install --quiet --progress-bar on --requirement requirements-check.txt
	@touch $@

readme: $(VENV)/ready ## renew the generated tables of README.md
	$(PY) -m hw readme

figures: $(VENV)/ready ## measure the README's figures anew; needs LIBERTY
	@mkdir -p $(BUILD)/tmp
	for recipe in area A; do \
	  for unit in dot_product_unit token_selector hash_bank_mapper bitonic_sorter; do \
	    for config in small edge; do \
	      $(PY) -m hw synth $$unit --config $$config --recipe $$recipe --liberty $(LIBERTY) -o $(BUILD)/synth || exit; \
	    done; \
	  done; \
	done
	$(PY) -m hw readme --reports $(BUILD)/synth

list: $(VENV)/ready ## the blocks and their parameters
	@$(PY) -m hw list

clean: ## remove build/
	rm -rf $(BUILD)
