"""A component that forwards every store call, to test the binding without the engine.

It exports `lcm:engine/probe@0.1.0` with the three functions of the store import.
"""

TYPES = """
    (type $code' (enum "invalid-input" "not-found" "exists" "limit-exceeded" "unsupported"
      "denied" "conflict" "store-unavailable" "would-block" "completion-failed" "corrupt"))
    (export "error-code" (type $code (eq $code')))
    (type $error' (record (field "code" $code) (field "message" string)))
    (export "error" (type $error (eq $error')))
    (type $bytes (option (list u8)))
    (type $put' (record (field "key" string) (field "value" $bytes)))
    (export "put" (type $put (eq $put')))
    (type $entry' (record (field "key" string) (field "value" (list u8))))
    (export "entry" (type $entry (eq $entry')))
"""

FUNCTIONS = {
    "get-many": '(param "keys" (list string)) '
    "(result (result (list (option (list u8))) (error $error)))",
    "scan": '(param "start" string) (param "end" string) (param "reverse" bool) '
    '(param "entries-max" u32) (param "bytes-max" u32) '
    "(result (result (tuple (list $entry) bool) (error $error)))",
    "commit": '(param "guards" (list $put)) (param "puts" (list $put)) '
    "(result (result (error $error)))",
}
PARAMS = {"get-many": 2, "scan": 7, "commit": 4}


def _core() -> str:
    lines = []
    for name, count in PARAMS.items():
        params = " ".join(["i32"] * count)
        pushes = " ".join(f"local.get {i}" for i in range(count))
        lines.append(f'(import "s" "{name}" (func ${name} (param {params} i32)))')
        lines.append(
            f'(func (export "{name}-x") (param {params}) (result i32) '
            f"{pushes} i32.const 16 call ${name} i32.const 16)"
        )
    lines.sort(key=lambda line: not line.startswith("(import"))
    return "\n".join(lines)


def wat() -> str:
    """Returns the component in the WebAssembly text format."""
    imports = "\n".join(f'(export "{n}" (func {t}))' for n, t in FUNCTIONS.items())
    options = "(memory $memory) (realloc $realloc)"
    lowered = "\n".join(
        f'(core func $l-{n} (canon lower (func $store "{n}") {options}))' for n in FUNCTIONS
    )
    given = "\n".join(f'(export "{n}" (func $l-{n}))' for n in FUNCTIONS)
    cores = "\n".join(f'(alias core export $m "{n}-x" (core func $x-{n}))' for n in FUNCTIONS)
    lifted = "\n".join(
        f"(func $f-{n} {t} (canon lift (core func $x-{n}) {options} (post-return $reset)))"
        for n, t in FUNCTIONS.items()
    )
    exported = "\n".join(f'(export "{n}" (func $f-{n}))' for n in FUNCTIONS)
    return f"""
(component
  (import "lcm:engine/store@0.1.0" (instance $store {TYPES} {imports}))
  (alias export $store "error" (type $error))
  (alias export $store "put" (type $put))
  (alias export $store "entry" (type $entry))
  (core module $part
    (memory (export "memory") 2)
    (global $next (mut i32) (i32.const 1024))
    (func (export "reset") (param i32) i32.const 1024 global.set $next)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
      global.get $next local.get 2 i32.add i32.const 1 i32.sub
      i32.const 0 local.get 2 i32.sub i32.and local.tee $at
      local.get 3 i32.add global.set $next
      (block $enough
        (br_if $enough (i32.le_u (global.get $next) (i32.mul (memory.size) (i32.const 65536))))
        (drop (memory.grow (i32.add (i32.const 1) (i32.div_u
          (i32.sub (global.get $next) (i32.mul (memory.size) (i32.const 65536)))
          (i32.const 65536))))))
      local.get $at))
  (core instance $mem (instantiate $part))
  (alias core export $mem "memory" (core memory $memory))
  (alias core export $mem "realloc" (core func $realloc))
  (alias core export $mem "reset" (core func $reset))
  {lowered}
  (core module $main {_core()})
  (core instance $given {given})
  (core instance $m (instantiate $main (with "s" (instance $given))))
  {cores}
  {lifted}
  (instance $out {exported})
  (export "lcm:engine/probe@0.1.0" (instance $out)))
"""
