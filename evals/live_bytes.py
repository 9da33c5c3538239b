"""Count the bytes that are alive while PyTorch runs, with or without a device: each storage when it is made and freed.

Under a ``FakeTensorMode`` nothing is allocated or computed, so that a 70B training step can be counted on a laptop.
Storages are rounded to 512 bytes, as the CUDA caching allocator does.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

BLOCK = 512


class LiveBytes(TorchDispatchMode):  # type: ignore[misc]  # torch is not installed where types are checked
    """While active, ``live`` and ``peak`` follow every tensor that an operation returns."""

    def __init__(self) -> None:
        super().__init__()
        self.live = 0
        self.peak = 0
        self._known: dict[int, int] = {}

    def adopt(self, tensors: Any) -> None:
        """Count the storages of tensors made before, each once: parameters and buffers."""
        for tensor in tensors:
            self._count(tensor)

    def restart(self) -> None:
        """Forget the peak so far: the next one begins at the bytes alive now."""
        self.peak = self.live

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for leaf in pytree.tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                self._count(leaf)
        return out

    def _count(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._known:
            return
        size = -(-storage.nbytes() // BLOCK) * BLOCK
        self._known[key] = size
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._freed, key)

    def _freed(self, key: int) -> None:
        self.live -= self._known.pop(key, 0)
