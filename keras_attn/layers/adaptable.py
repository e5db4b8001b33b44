"""Quantization and LoRA for subclasses of Keras' layers."""

from typing import Any

from keras import ops

from keras_attn.ops.integer_product import are_weights_constants
from keras_attn.validation import require


class Adaptable:
    """Lets a subclass of a Keras layer be quantized and adapted as the layer itself.

    Keras quantizes `type(self) is Dense` alone. It also stores kernels with their adapters merged
    into them, and on loading sets both factors of an adapter to zero, from where no gradient leads
    away; here the first factor keeps its values, so that an adapter can be trained further.

    A subclass names this class before that of Keras.
    """

    lora_enabled: bool

    def _adapters(self) -> list[tuple[Any, Any]]:
        """The two factors of each adapter; none before `enable_lora`."""
        made = hasattr(self, "lora_kernel_a")
        return [(self.lora_kernel_a, self.lora_kernel_b)] if made else []

    def quantize(self, mode=None, type_check=True, config=None):
        """Quantizes the weights; arguments as those of `keras.layers.Layer.quantize`."""
        super().quantize(mode, type_check=False, config=config)

    def quantized_call(self, *arguments, **options):
        if self._awaits_calibration():
            return self.call(*arguments, **options)  # on which Keras' calibration listens
        return super().quantized_call(*arguments, **options)

    def _awaits_calibration(self) -> bool:
        mode = self.quantization_mode
        return mode in ("gptq", "awq") and not getattr(self, f"is_{mode}_calibrated")

    def _has_constant_integers(self) -> bool:
        """Whether the weights are 8-bit integers that a graph holds as constants."""
        is_int8 = self.quantization_mode == "int8" and not self.lora_enabled
        return is_int8 and are_weights_constants()

    def save_own_variables(self, store):
        mode = self.quantization_mode
        require(
            not self._awaits_calibration(),
            f"A layer was not calibrated; leave it out of `quantize({mode!r})` by its `filters`.",
            layer=self.path,
        )
        super().save_own_variables(store)

    def _get_kernel_with_merged_lora(self):
        # Keras leaves the zero points of GPTQ and AWQ out of files, and then cannot load them.
        kernel, scale, zero = super()._get_kernel_with_merged_lora()
        return kernel, scale, getattr(self, "kernel_zero", None) if zero is None else zero

    def load_own_variables(self, store):
        enabled, self.lora_enabled = self.lora_enabled, False
        try:
            super().load_own_variables(store)
        finally:
            self.lora_enabled = enabled
        for _, second in self._adapters():
            second.assign(ops.zeros(second.shape, second.dtype))

    def _check_load_own_variables(self, store):
        if not self._adapters():  # which no file has
            super()._check_load_own_variables(store)
