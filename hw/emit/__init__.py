"""From blocks to Verilog packages, one way:

    component -> contract -> header ------------------------------+
        |                                                         v
        +-----> emission -> RTLIL -> Yosys -> netlist -> text -> package -> files
                                                |                            |
                                                +-------> equivalence <------+

``contract`` reads what a component promises, before anything is emitted. ``emission`` elaborates it, one module for
each distinct block (``rtlil_text``), lets Yosys optimise (``yosys``) and has the result written (``netlist``,
``operators``, ``dataflow``, ``naming``, ``verilog``). ``package`` puts texts and headers into files and lists them.
``equivalence`` compares the files with the netlist. Nothing refers back; a test reads that from the imports.
"""
