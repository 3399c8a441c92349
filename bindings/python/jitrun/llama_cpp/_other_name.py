"""Modules of this package under another name: after `sys.modules["llama_cpp"] = jitrun.llama_cpp`, the module
llama_cpp.llama_grammar is jitrun.llama_cpp.llama_grammar, and no second one with classes of its own."""
import importlib
import sys
from importlib.machinery import ModuleSpec

PACKAGE = __name__.rpartition(".")[0]


class OtherName:
    def find_spec(self, name, path=None, target=None):
        parent = name.rpartition(".")[0]
        if parent == PACKAGE or parent not in sys.modules or sys.modules[parent] is not sys.modules.get(PACKAGE):
            return None
        return ModuleSpec(name, self)

    def create_module(self, spec):
        module = importlib.import_module(PACKAGE + "." + spec.name.rpartition(".")[2])
        self.own = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self.own  # importlib has put the other name's there


sys.meta_path.insert(0, OtherName())
