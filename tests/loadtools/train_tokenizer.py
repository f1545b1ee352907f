"""Train a small tokenizer, byte-level BPE, on the text of standard input, into a folder.

    gen --format text ... | python train_tokenizer.py FOLDER

Load tools count tokens with a tokenizer of their own, and would fetch one over the network.

No token is a NUL: GuideLLM begins each prompt with another token of the vocabulary, in an order that
differs from run to run, and runnel refuses a prompt with a NUL in it.
"""

import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

NUL = "\u0100"  # as the byte-level alphabet writes it

tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
trainer = trainers.BpeTrainer(vocab_size=2000, special_tokens=["<eos>"], show_progress=False,
                              initial_alphabet=[c for c in pre_tokenizers.ByteLevel.alphabet() if c != NUL])
tokenizer.train_from_iterator(sys.stdin, trainer)
PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>").save_pretrained(sys.argv[1])
