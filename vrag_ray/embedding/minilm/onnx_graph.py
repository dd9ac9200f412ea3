"""Writes an ONNX graph in memory and starts it; no file, and no second copy of the weights on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import onnx
    import onnxruntime

OPSET = 20
IR_VERSION = 10
LAYER_NORM_EPSILON = 1e-12


class GraphBuilder:
    """Collects nodes and initializers. A method that adds a node returns the name of the node's output."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, NDArray[np.float32]] = {}
        self._constants: dict[str, onnx.TensorProto] = {}

    def add(
        self, op: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: float | str | Sequence[int]
    ) -> str:
        from onnx import helper

        node = helper.make_node(op, list(inputs), [output], domain=domain)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        self._nodes.append(node)
        return output

    def constant(self, name: str, value: NDArray[np.float32] | NDArray[np.int64]) -> str:
        """A small tensor that shape inference wants to look into, so it travels inside the graph."""
        from onnx import numpy_helper

        self._constants[name] = numpy_helper.from_array(value, name)
        return name

    def weight(self, name: str, value: NDArray[np.float32]) -> str:
        """A large tensor: the graph declares it, and the session is handed its memory."""
        self._weights[name] = value
        return name

    def session(
        self, inputs: Sequence[onnx.ValueInfoProto], output: onnx.ValueInfoProto, *, intra_op_threads: int
    ) -> onnxruntime.InferenceSession:
        """ONNX Runtime on the CPU. It copies the weights, so their memory may go once this returns."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = intra_op_threads
        options.inter_op_num_threads = 1
        # Waiting threads that spin take the cores from the other embedding processes.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(value) for value in self._weights.values()]
        options.add_external_initializers(list(self._weights), values)
        return onnxruntime.InferenceSession(self._model(inputs, output), options, providers=["CPUExecutionProvider"])

    def _model(self, inputs: Sequence[onnx.ValueInfoProto], output: onnx.ValueInfoProto) -> bytes:
        from onnx import helper

        declared = [_declare(name, value) for name, value in self._weights.items()]
        graph = helper.make_graph(self._nodes, "graph", inputs, [output], [*declared, *self._constants.values()])
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        serialised: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION).SerializeToString()
        return serialised


def _declare(name: str, value: NDArray[np.float32]) -> onnx.TensorProto:
    from onnx import StringStringEntryProto, TensorProto, helper

    return TensorProto(
        name=name,
        data_type=helper.np_dtype_to_tensor_dtype(value.dtype),
        dims=value.shape,
        data_location=TensorProto.EXTERNAL,
        external_data=[StringStringEntryProto(key="location", value="in-memory")],
    )
