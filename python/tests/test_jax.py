"""Functions, and what jax makes of them."""

import pytest

import hloc

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
numpy = pytest.importorskip("numpy")


def layer(x, w, unused=0.0):
    return {"y": jnp.tanh(x) @ w, "norm": (x * x).sum(axis=1)}


X = numpy.linspace(-2, 2, 64 * 32, dtype=numpy.float32).reshape(64, 32)
W = numpy.eye(32, dtype=numpy.float32)


def test_functions_jitted_and_plain():
    plain = hloc.compile(layer, X, W)
    assert plain.kernels and plain.hlo.startswith("HloModule jit_layer")
    assert hloc.compile(jax.jit(layer), X, W).ptx == plain.ptx
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in (X, W)]
    assert hloc.compile(layer, *shapes).ptx == plain.ptx


def test_lowered_and_compiled():
    lowered = jax.jit(layer).lower(X, W)
    assert hloc.compile(lowered).hlo.startswith("HloModule jit_layer")
    assert hloc.compile(lowered.compile()).kernels


def test_stablehlo_is_converted(tmp_path):
    text = jax.jit(layer).lower(X, W).as_text()
    assert "stablehlo" in text
    path = tmp_path / "layer.mlir"
    path.write_text(text)
    expected = hloc.run(layer, X, W).results
    for what in (text, path):
        assert hloc.compile(what).hlo.startswith("HloModule jit_layer")
        for got, wanted in zip(hloc.run(what, X, W).results, expected):
            assert (got == wanted).all()


def test_wrong_stablehlo_is_an_input_error():
    with pytest.raises(hloc.InputError, match="jaxlib does not take this StableHLO"):
        hloc.compile("module @m {\n  func.func public @main() -> tensor<4xf32> {\n    stablehlo.nothing\n  }\n}\n")


def test_results_have_the_form_of_the_function():
    run = hloc.run(layer, X, W, 1.0)
    expected = layer(X, W)
    assert set(run.value) == {"y", "norm"} and run.verdict == "agrees"
    for name in expected:
        numpy.testing.assert_allclose(run.value[name], expected[name], rtol=1e-5, atol=1e-5)


def test_arguments_that_are_not_used_are_no_parameters():
    def second(a, b, c):
        return b + 1

    assert (hloc.run(second, X, W, X).value == W + 1).all()
    assert hloc.run(jax.jit(second, keep_unused=True), X, W, X).verdict == "agrees"


def test_trees_and_numbers():
    def f(tree, scale):
        return tree["a"] * scale, tree["b"][0]

    value = hloc.run(f, {"a": numpy.arange(8.0), "b": [numpy.arange(3)]}, 2.5).value
    assert (
        isinstance(value, tuple) and list(value[0]) == [2.5 * i for i in range(8)] and value[0].dtype == numpy.float32
    )
    assert value[1].dtype == numpy.int32 and list(value[1]) == [0, 1, 2]


def test_narrow_types_and_keys():
    value = hloc.run(lambda x: x * 2, jnp.arange(8, dtype=jnp.bfloat16)).value
    assert str(value.dtype) == "bfloat16" and list(value.astype(int)) == [0, 2, 4, 6, 8, 10, 12, 14]
    key = jax.random.key(7)
    bits = hloc.run(lambda k: jax.random.bits(k, (16,)), key).value
    assert (bits == numpy.asarray(jax.random.bits(key, (16,)))).all()


def test_long_constants_are_whole():
    table = numpy.random.default_rng(1).normal(size=(100, 30)).astype(numpy.float32)
    run = hloc.run(lambda x: x + table, numpy.zeros((100, 30), numpy.float32))
    assert (run.value == table).all()


def test_static_arguments():
    """Which they are is not known, so that nobody takes one for an array."""
    last = jax.jit(lambda x, n: x * n, static_argnums=1)
    assert "constant(3)" in hloc.compile(last.lower(X, 3)).hlo and "constant(3)" in hloc.compile(last, X, 3).hlo
    first = jax.jit(lambda n, x: x * n, static_argnums=0)
    with pytest.raises(hloc.InputError, match="static"):
        hloc.run(first, 3, X)
    assert (hloc.run(first, 3, X, inputs=[X]).value == X * 3).all()
    assert hloc.check(first, 3, X).verdict == "agrees"


def test_traced_and_exported():
    assert hloc.compile(jax.jit(layer).trace(X, W)).ptx == hloc.compile(layer, X, W).ptx
    export = pytest.importorskip("jax.export", exc_type=ImportError)  # of 0.4.30 needs absl, which jax does not install
    exported = export.export(jax.jit(layer))(X, W)
    assert hloc.run(exported, X, W).verdict == "agrees"


def test_check():
    assert hloc.check(jax.nn.softmax, jax.ShapeDtypeStruct((4, 100), jnp.float32)).regimes[0] == "ordinary"
    assert hloc.check(jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 2)), X).verdict == "agrees"
    assert hloc.check(layer, X, W, inputs="given").regimes == ["given"]


def test_errors_point_into_the_hlo():
    callback = lambda x: jax.pure_callback(lambda a: a, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    with pytest.raises(hloc.Unsupported) as raised:
        hloc.compile(jax.jit(callback), X, lower_for=None)
    assert raised.value.line and "Python" in str(raised.value)
